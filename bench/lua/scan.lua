-- Scans guest passes that were never scanned: line n of the file BENCH_PASSES, threads
-- take every stride-th line from BENCH_START on. A pass that runs out is sent again and
-- found out by the count of check-ins afterwards.
dofile(os.getenv("BENCH_LUA") .. "/report.lua")

sent = 0
local passes, start, headers

function init(args)
   passes, start = lines_of("BENCH_PASSES"), tonumber(os.getenv("BENCH_START"))
   headers = { ["Content-Type"] = "application/json", ["Authorization"] = os.getenv("BENCH_AUTHORIZATION") }
end

function request()
   local n = start + id + stride * sent
   sent = sent + 1
   local body = string.format('{"scanId":"%08x-0000-4000-8000-%012x","code":"%s"}',
      n, n, passes[n % #passes + 1])
   return wrk.format("POST", os.getenv("BENCH_PATH"), headers, body)
end
