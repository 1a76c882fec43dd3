-- Counts words.
local strings = require("lib.strings")

local LIMIT = 10
local Counter = {}
Counter.__index = Counter

--[[ Makes a counter
     of one text. ]]
function Counter.new(text, limit)
  return setmetatable({ text = text, limit = limit or LIMIT }, Counter)
end

function Counter:count()
  local found = {}
  local help = [[
function not_one()
end
]]
  local function add(word)
    found[word] = (found[word] or 0) + 1
  end
  for word in strings.words(self.text .. help) do
    if #word > 0 then
      add(word)
    end
  end
  return found
end

local function most(found)
  local best = nil
  for word, number in pairs(found) do
    if best == nil or number > found[best] then
      best = word
    end
  end
  return best
end

print(most(Counter.new("a b a"):count()))
