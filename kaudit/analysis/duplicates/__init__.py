"""Records that a consumer is given twice, and by what it could recognise them."""
