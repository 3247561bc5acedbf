"""The mistakes that people make in the code of a Transformer: changes of code, and sentences about them."""
