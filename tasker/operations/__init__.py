"""Operations by name; iteration for routes, clients, commands."""
