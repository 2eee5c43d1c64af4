"""cosim reproduce: train the tables of the papers and print both beside each other."""
