; A part of the text with its heading; smaller parts belong to it.
(section (atx_heading (atx_h1_marker) heading_content: (_) @name)) @class
(section (setext_heading heading_content: (_) @name)) @class
(section (atx_heading
  [(atx_h2_marker) (atx_h3_marker) (atx_h4_marker) (atx_h5_marker) (atx_h6_marker)]
  heading_content: (_) @name)) @function
