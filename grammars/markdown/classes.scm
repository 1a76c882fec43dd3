(html_block) @comment
(atx_heading heading_content: (_) @name)
(setext_heading heading_content: (_) @name)
