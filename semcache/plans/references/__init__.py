"""How plans refer to results: paths and conditions."""
