"""What runs say: tables with the uncertainty that they have, and tests of what differs. No torch.

`intervals`, `sign_flip`, `power`, `comparing` and `ranking` are the statistics, of plain numbers.
"""
