"""The results of a verb: figures and their intervals, pages, tables, the style of figures."""
