"""A user's own images: read, learnt from, and kept as a model that others can use.

`files` lists and opens what was brought, `pictures` decodes it, `folder` makes data of it;
`choose` picks a row, `verdicts` says what more images would bring; `model` keeps it, `card` says
what is known of it, `export` makes one ONNX file of it.
"""
