-- Rescues what dead instances held, for whoever is no instance.
--
-- Asked: most. Gives: how many were rescued.
local rescued = rescue(asked.most)
enter()
return rescued
