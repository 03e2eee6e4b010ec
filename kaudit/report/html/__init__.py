"""The report as one HTML file: a model of the page, its packed columns, and the document that holds both."""
