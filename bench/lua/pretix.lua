-- Checks in tickets of pretix that were never checked in: number n of those that
-- tickets_of_pretix.py made, threads take every stride-th from BENCH_START on.
dofile(os.getenv("BENCH_LUA") .. "/report.lua")

sent = 0
local start, list, headers

function init(args)
   start, list = tonumber(os.getenv("BENCH_START")), os.getenv("BENCH_LIST_ID")
   headers = { ["Content-Type"] = "application/json", ["Authorization"] = os.getenv("BENCH_AUTHORIZATION") }
end

function request()
   local n = start + id + stride * sent
   sent = sent + 1
   local body = string.format('{"secret":"bench%026d","lists":[%s],"nonce":"bench-%d"}', n, list, n)
   return wrk.format("POST", os.getenv("BENCH_PATH"), headers, body)
end
