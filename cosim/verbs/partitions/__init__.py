"""A backbone that is cut into circuits and software: compiled and compared part by part."""
