"""`rumqd top`: a live view of a broker in the terminal. Frames are values; `live` alone touches the screen."""
