"""Known bugs of brokers and clients, and the traces they leave: one module and one page per bug."""
