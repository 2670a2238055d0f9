"""What was published about ranked subscriptions that the product does not use: systems with one service (`central`)."""
