"""The broker's figures over hours and days, sampled by the gateway itself: what the page plots without a database."""
