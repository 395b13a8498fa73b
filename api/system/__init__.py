"""The state of the whole service: what is wrong and what to do, for administrators."""
