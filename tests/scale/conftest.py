"""What the tests of an engine share."""

import ibis
import pytest


@pytest.fixture(scope="module")
def one_connection():
    """One connection, and each question translated once: most of a small table's time."""
    con = ibis.duckdb.connect(threads=1)
    translated, translate, read, ask = {}, con.compile, con.read_parquet, con.raw_sql

    def compile_once(expression, **settings):
        key = expression.op()
        if key not in translated:
            translated[key] = translate(expression, **settings)
        return translated[key]

    def replacing(query):
        return ask(query.replace("E V", "E OR REPLACE V") if isinstance(query, str) else query)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(con, "compile", compile_once)
        patch.setattr(con, "read_parquet", lambda path: read(path, table_name="judged"))
        patch.setattr(con, "raw_sql", replacing)
        patch.setattr(ibis.duckdb, "connect", lambda **settings: con)
        yield
