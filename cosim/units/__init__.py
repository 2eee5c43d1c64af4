"""The kinds of recurrent unit, each in one place: its equations in software and on the chip, its circuit, its power."""
