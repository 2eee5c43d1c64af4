"""A folder for each question that can be asked of a network: its options, what it runs, the page of its results."""
