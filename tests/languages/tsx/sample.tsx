import React from "react";

interface Props {
  name: string;
}

export function Greeting({ name }: Props) {
  const [count, setCount] = React.useState(0);
  return (
    <div className="box">
      {/* a comment */}
      <b onClick={() => setCount(count + 1)}>{name}</b>
    </div>
  );
}

export const List = (props: Props) => {
  return <ul>{props.name}</ul>;
};
