--- Colours for the Markdown of answers, by line and in one pass.
---
--- Neither the syntax file nor tree-sitter keeps up with a text that grows by a thousand words a
--- second: each takes the longer for a line the longer the text is. Code in fences is coloured by
--- tree-sitter once its text is complete.
local M = {}

local MOST_CODE_LINES, MOST_SYNTAX_LINES = 400, 100

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
    local here, last = row + index - 1, index == #lines
    if fence and fence.sign == '|' and not line:find('^%s*|') then
      if not last or complete then
        table.insert(closed, { first = fence.row, last = here, language = '|' })
      end
      fence = nil
    elseif not fence and line:find('^%s*|.*|') then
      fence = { sign = '|', language = '|', row = here }
    end
    local code = fence and fence.sign ~= '|'
    local sign = line:match('^%s*(```+)') or line:match('^%s*(~~~+)')
    if sign and not code then
      local language = line:match('^%s*[`~]+%s*([%w_+-]*)')
      fence = { sign = sign, language = language, row = here + 1 }
      table.insert(marks, { row = here, group = 'KodeFence', line = true })
    elseif code and sign and sign:sub(1, 1) == fence.sign:sub(1, 1) and #sign >= #fence.sign then
      if not last or complete then
        table.insert(closed, { first = fence.row, last = here, language = fence.language })
      end
      fence = nil
      table.insert(marks, { row = here, group = 'KodeFence', line = true })
    elseif code then
      table.insert(marks, { row = here, group = 'KodeCodeBlock', line = true })
    elseif line ~= '' then
      mark_line(line, here, marks)
    end
  end
  if complete and fence and fence.sign == '|' then
    table.insert(closed, { first = fence.row, last = row + #lines, language = '|' })
  end
  return marks, before_last, closed
end

-- How wide a cell of a table is when the signs in it are hidden.
local function shown_width(cell)
  for _, kind in ipairs(spans) do
    cell = cell:gsub(kind.pattern:gsub('%(%)', ''), function(found)
      local sign = found:match('^%*+') or '`'
      return found:sub(#sign + 1, -#sign - 1)
    end)
  end
  return vim.fn.strdisplaywidth(cell)
end

-- The columns where cells of a line begin and end, without the bars.
local function cells_of(line)
  local cells, from = {}, nil
  for bar in line:gmatch('()|') do
    if line:sub(bar - 1, bar - 1) ~= '\\' then
      if from then
        table.insert(cells, { from = from, to = bar - 1, text = line:sub(from, bar - 1) })
      end
      from = bar + 1
    end
  end
  return cells
end

-- Bars become lines, and cells as wide as the widest of their column; the text stays as it is.
local function draw_table(lines, row, marks)
  local rows, widths = vim.tbl_map(cells_of, lines), {}
  for index, cells in ipairs(rows) do
    for column, cell in ipairs(cells) do
      cell.width = shown_width(cell.text)
      widths[column] = math.max(widths[column] or 0, index == 2 and 0 or cell.width)
    end
  end
  for index, cells in ipairs(rows) do
    local rule = index == 2 and lines[2]:find('^[%s|:-]+$')
    for column, cell in ipairs(cells) do
      local here = { row = row + index - 1, group = 'KodeRule' }
      local function mark(more)
        table.insert(marks, vim.tbl_extend('error', here, more))
      end
      mark({ from = cell.from - 2, to = cell.from - 1, conceal = '│' })
      if rule then
        mark({ from = cell.from - 1, to = cell.to, conceal = '' })
        mark({ from = cell.from - 1, inline = ('─'):rep(widths[column]) })
      elseif cell.width < widths[column] then
        mark({ from = cell.to, inline = (' '):rep(widths[column] - cell.width) })
      end
      if column == #cells then
        mark({ from = cell.to, to = cell.to + 1, conceal = '│' })
      end
    end
  end
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

-- Colours of Vim's syntax files, for languages without a parser.
local function colour_by_syntax(code, named, row, marks)
  local known = #vim.api.nvim_get_runtime_file(('syntax/%s.vim'):format(named), false) > 0
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, code)
  vim.api.nvim_buf_call(buffer, function()
    vim.bo.syntax = known and named or vim.filetype.match({ filename = 'code.' .. named }) or ''
    for index, line in ipairs(code) do
      local from, group = 0, 0
      for column = 1, #line + 1 do
        local here = column <= #line and vim.fn.synID(index, column, 1) or 0
        if here ~= group then
          if group ~= 0 then
            local name = vim.fn.synIDattr(group, 'name')
            table.insert(
              marks,
              { row = row + index - 1, from = from, to = column - 1, group = name }
            )
          end
          from, group = column - 1, here
        end
      end
    end
  end)
  vim.api.nvim_buf_delete(buffer, { force = true })
end

--- Marks for code or a table that is complete.
---@param lines string[]
---@param row integer
---@param named string the language; `|` for a table
---@return kode.Mark[]
function M.code(lines, row, named)
  local marks = {}
  local language = vim.treesitter.language.get_lang(named) or named
  if named == '|' then
    draw_table(lines, row, marks)
  elseif language ~= '' and #lines <= MOST_CODE_LINES then
    if not pcall(colour, lines, language, row, marks) and #lines <= MOST_SYNTAX_LINES then
      pcall(colour_by_syntax, lines, named, row, marks)
    end
  end
  return marks
end

return M
