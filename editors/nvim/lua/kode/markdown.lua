--- Colours for the Markdown of answers, by line and in one pass.
---
--- Neither the syntax file nor tree-sitter keeps up with a text that grows by a thousand words a
--- second: each takes the longer for a line the longer the text is. Code in fences is coloured by
--- tree-sitter once its text is complete.
local M = {}

local MOST_CODE_LINES = 400

-- What stands between two signs: the signs are hidden, what they mean is shown.
local spans = {
  { pattern = '()`()[^`]+()`()', group = 'KodeCode' },
  { pattern = '()%*%*()[^*]+()%*%*()', group = 'KodeStrong' },
}

local line_groups = {
  { pattern = '^#+ ', group = 'KodeHeading', whole = true },
  { pattern = '^%s*[-*+] ', group = 'KodeList' },
  { pattern = '^%s*%d+[.)] ', group = 'KodeList' },
  { pattern = '^>', group = 'KodeDim', whole = true },
}

local function mark_line(line, row, marks)
  for _, kind in ipairs(line_groups) do
    local first, last = line:find(kind.pattern)
    if first then
      local to = kind.whole and #line or last
      table.insert(marks, { row = row, from = 0, to = to, group = kind.group })
      break
    end
  end
  for _, kind in ipairs(spans) do
    local at = 1
    while true do
      local first, inner, inner_end, last = line:match(kind.pattern, at)
      if not first then
        break
      end
      table.insert(marks, { row = row, from = first - 1, to = inner - 1, conceal = '' })
      table.insert(marks, { row = row, from = inner - 1, to = inner_end - 1, group = kind.group })
      table.insert(marks, { row = row, from = inner_end - 1, to = last - 1, conceal = '' })
      at = last
    end
  end
end

---@class kode.Fence code that is open
---@field sign string
---@field language string
---@field row integer

--- Marks of lines that follow each other.
---@param lines string[]
---@param row integer of the first of them
---@param fence? kode.Fence in which they begin
---@param complete boolean the last line will not grow
---@return kode.Mark[] marks
---@return kode.Fence? fence that is open before the last line, which may still grow
---@return table[] closed code: the rows after its fence and of the next one, and its language
function M.marks(lines, row, fence, complete)
  local marks, before_last, closed = {}, fence, {}
  for index, line in ipairs(lines) do
    before_last = fence
    local here = row + index - 1
    local sign = line:match('^%s*(```+)') or line:match('^%s*(~~~+)')
    if sign and not fence then
      local language = line:match('^%s*[`~]+%s*([%w_+-]*)')
      fence = { sign = sign, language = language, row = here + 1 }
      table.insert(marks, { row = here, group = 'KodeFence', line = true })
    elseif fence and sign and sign:sub(1, 1) == fence.sign:sub(1, 1) and #sign >= #fence.sign then
      if index < #lines or complete then
        table.insert(closed, { first = fence.row, last = here, language = fence.language })
      end
      fence = nil
      table.insert(marks, { row = here, group = 'KodeFence', line = true })
    elseif fence then
      table.insert(marks, { row = here, group = 'KodeCodeBlock', line = true })
    elseif line ~= '' then
      mark_line(line, here, marks)
    end
  end
  return marks, before_last, closed
end

local function colour(code, language, row, marks)
  local parser = vim.treesitter.get_string_parser(table.concat(code, '\n'), language)
  local query = vim.treesitter.query.get(language, 'highlights')
  if not query then
    return
  end
  for id, node in query:iter_captures(parser:parse()[1]:root(), table.concat(code, '\n')) do
    local first, from, last, to = node:range()
    local name = query.captures[id]
    if first == last and name:sub(1, 1) ~= '_' and name ~= 'spell' then
      table.insert(
        marks,
        { row = row + first, from = from, to = to, group = '@' .. name .. '.' .. language }
      )
    end
  end
end

--- Marks for code that is complete, if there is a parser for it.
---@param lines string[]
---@param row integer
---@param named string
---@return kode.Mark[]
function M.code(lines, row, named)
  local marks = {}
  local language = vim.treesitter.language.get_lang(named) or named
  if language ~= '' and #lines <= MOST_CODE_LINES then
    pcall(colour, lines, language, row, marks)
  end
  return marks
end

return M
