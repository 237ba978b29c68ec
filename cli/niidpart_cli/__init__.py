"""The commands `niidpart` and `fltrain`: they parse, call one function, and print.

Installed as `niidpart_cli`.
"""
