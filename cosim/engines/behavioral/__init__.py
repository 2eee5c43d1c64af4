"""The sized graph evaluated by vectorised equations instead of transistors."""
