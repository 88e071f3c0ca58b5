"""What a taught classifier is, and what each verb does to it: learn, merge, forget, answer."""
