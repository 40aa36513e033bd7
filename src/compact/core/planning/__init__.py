"""How the next plan is made: what is proposed, what gives way where that is not enough, and what has to stay.

coordinator       runs strategies, then keeps less, then cuts
attachment_moves  attachments in use stay, others are moved out
squeeze           cuts what is too large, and fills up what is left
shortening        cuts single messages down to their best lines
last_resort       what is left out where nothing smaller can stand for it
constraint_guard  puts constraints back that a plan would lose
"""
