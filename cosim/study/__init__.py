"""Questions put to a design: do the engines agree, what does it draw, where does it fail. Figures, no pictures."""
