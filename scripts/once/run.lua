-- A run is a text of words:
--   start    when its period starts (ms)
--   over     when its period is over (ms)
--   fence    that of the hold that it runs under
--   attempt  the number of the run in its period, from 1; one that was stopped has no number of its own
--   begun    when it began (ms)
--   ended    when it ended (ms), 0 where that is not known
--   again    from when on the next run may begin (ms), 0 for at once
--   missed   how many periods went by without a success before this one, 0 where a run that failed has told so
--   outcome  begun, done, failed or stopped
--   node     the node that runs it
--   label    that of the node, any bytes, behind its size and a colon
--   error    why it failed, any bytes up to the end
-- A run that has begun goes on, or its process has died: the lock of the name tells which.

-- run_read returns a run, nil for a text that is none.
local function run_read(text)
  local start, over, fence, attempt, begun, ended, again, missed, outcome =
    string.match(text, "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%a+) %S+ %d+:")
  return start and {
    text = text, start = start + 0, over = over + 0, fence = fence + 0, attempt = attempt + 0, begun = begun + 0,
    ended = ended + 0, again = again + 0, missed = missed + 0, outcome = outcome,
  }
end

-- run_write returns the text of a run, with who runs it and why it failed.
local function run_write(run, node, label, why)
  return string.format("%d %d %d %d %d %d %d %d %s %s %d:", run.start, run.over, run.fence, run.attempt, run.begun,
    run.ended, run.again, run.missed, run.outcome, node, #label) .. label .. why
end
