"""What grows: the time of one call for a large case and for one a quarter as large, each with a bound."""
