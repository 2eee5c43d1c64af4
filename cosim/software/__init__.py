"""Models that stay software, in torch: backbones and cells of the papers, beside what compiles."""
