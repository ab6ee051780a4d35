"""What the book's pages share: data sets, networks, studies, stored evidence, theory, publishing.

A module is named like the page that it serves. `probnb`, the library, knows nothing of it.
"""
