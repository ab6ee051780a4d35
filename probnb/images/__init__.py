"""A user's own images: read, learnt from, and kept as a model that others can use.

`files` lists and opens what was brought, `pictures` decodes it, `folder` makes data of it;
`choose` picks a row, `model` keeps it, `card` says what is known of it, `predict` uses it, `export`
makes one ONNX file of it.
"""
