"""The data sets of the chapters; each returns `probnb.data.Splits`."""
