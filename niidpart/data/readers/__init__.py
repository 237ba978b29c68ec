"""Readers of file formats that several sources share."""
