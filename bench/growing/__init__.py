"""How cost grows: the rows that bench/growth.py measures, a file for each subject, and what makes a page of them."""
