"""Executors: how the jobs of a round run. They change how, never what is computed. An executor imports no algorithm."""
