"""How does the JSON of an event become codes without becoming a dictionary first? A scanner.

`scanner` prepares the names and operands of some axes, and `kernels` has the compiled loop over the bytes.
"""
