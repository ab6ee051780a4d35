"""The page that shows CaPE itself."""
