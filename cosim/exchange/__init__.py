"""Networks in the forms that other tools read and write."""
