"""What the papers prove about each model, by subject, as checks that can be run.

``anharmonic_papers.theory.all_statements`` imports every file here.
"""
