"""What the documents prove about each model, by subject, as checks that can be run.

``anharmonic.theory.all_statements`` imports every file here.
"""
