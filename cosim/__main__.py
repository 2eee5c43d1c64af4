"""python -m cosim: the command line."""

from cosim.cli import main

if __name__ == "__main__":
    main()
