"""The file at the end of a copy: checked, written, and sent anew as another file."""
