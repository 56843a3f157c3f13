-- Reads the paths of the file BENCH_PATHS in turn.
dofile(os.getenv("BENCH_LUA") .. "/report.lua")

sent = 0
local prepared = {}

function init(args)
   local headers = { ["Authorization"] = os.getenv("BENCH_AUTHORIZATION") }
   for _, path in ipairs(lines_of("BENCH_PATHS")) do
      table.insert(prepared, wrk.format("GET", path, headers))
   end
end

function request()
   sent = sent + 1
   return prepared[sent % #prepared + 1]
end
