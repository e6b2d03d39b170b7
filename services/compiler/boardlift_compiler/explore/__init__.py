"""Understanding a model before it is delivered: estimates, sensitivity, remedies and search."""
