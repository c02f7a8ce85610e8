"""SQL for who outgrows one table or one machine: written for an operator to run, never run here."""
