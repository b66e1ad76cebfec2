"""Run the command line as `python -m everlearn`."""

from everlearn.cli import main

if __name__ == "__main__":
    main()
