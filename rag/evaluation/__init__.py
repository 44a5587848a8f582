"""An evaluation: datasets to cases, questions asked, answers measured, results written."""
