"""The web page below `/ui`: what is happening, why something does not move, what to do about it.

Routes parse and call the services that the API and the command line call; `views` say, purely, what templates show.
"""
