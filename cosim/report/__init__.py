"""What people look at: tables for a terminal, figures, HTML pages, schematics."""
