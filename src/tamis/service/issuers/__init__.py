"""How are tokens that others have issued verified? JSON Web Tokens, and OpenID Connect.

`keys` reads the keys of an issuer, `fetching` gets them from a file or an address and gets them again when they
change, `claims` says who a token stands for, and `verifying` puts it together and remembers what was verified.
"""
